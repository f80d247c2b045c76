"""`python -m reproduce`; what it does is in `command`."""

import os
import sys

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy: threads of several processes only fight
try:
    from .command import main
except ModuleNotFoundError as error:
    missing = str(error.name).split(".")[0]
    sys.exit(f"error: {missing} is not installed, which figures need: in this checkout `make env`, or "
             "pip install -e '.[figures]'")

if __name__ == "__main__":
    sys.exit(main())
