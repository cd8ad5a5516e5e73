"""`python -m queueing_ucrl`, the same as `queueing-ucrl`."""

from __future__ import annotations


def main() -> None:
    """The program; Ctrl-C while it is being loaded ends it as it does later."""
    try:
        from queueing_ucrl.cli import main as program
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    program()


if __name__ == "__main__":
    main()
