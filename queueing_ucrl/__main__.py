from queueing_ucrl.cli import main

main()
