"""`python -m analysis.lessons build [FOLDER]`: the lessons as pages that open without a network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # where the notebooks find their charts, too

from lesson_pages import main

if __name__ == "__main__":
    sys.exit(main())
