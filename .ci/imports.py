"""Import every module of fedsim, theory and reproduce: `python -W error .ci/imports.py`, in the checkout."""

import importlib
import pkgutil
import sys

sys.path.insert(0, "")
names = ["fedsim", "theory", "reproduce"]
names += [info.name for package in names for info in pkgutil.walk_packages([package], f"{package}.")
          if not info.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(f"Python {sys.version.split()[0]}: {len(names)} modules imported without a warning")
