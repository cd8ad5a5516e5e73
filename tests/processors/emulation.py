"""Other processors on this one: the environment variables that make libraries use the code for a weaker processor.

python emulation.py      prints the variables of the weakest of them, one KEY=VALUE a line
"""

from __future__ import annotations

import os
import platform
import tempfile

import numpy as np

# glibc before 2.33 calls what is usable X_Usable, later ones X; unknown names are ignored
_HWCAPS = ("AVX", "AVX2", "FMA", "FMA4", "AVX512F", "AVX512VL")


def numpy_features() -> list[str]:
    """What numpy has other code for and this processor could run; the names differ by version."""
    core = getattr(np, "_core", None) or np.core
    about = core._multiarray_umath
    return [name for name in about.__cpu_dispatch__ if about.__cpu_features__.get(name)]


def has_fma() -> bool:
    """Whether the processor as it is has fused multiply-add, which the variants of glibc and OpenBLAS are about."""
    core = getattr(np, "_core", None) or np.core
    return bool(core._multiarray_umath.__cpu_features__.get("FMA3"))


def missing() -> dict[str, str]:
    """Why a processor of `processors` cannot be emulated here, by name."""
    found = {}
    if not numpy_features():
        found["numpy"] = "numpy has no other code for this processor to choose from"
    if platform.machine() not in ("x86_64", "AMD64"):
        found["openblas"] = "OPENBLAS_CORETYPE names x86 processors here"
        found["glibc"] = "the names of glibc's processor features are those of x86"
    elif platform.libc_ver()[0] != "glibc":
        found["glibc"] = "the C library is not glibc"
    return found


def processors() -> dict[str, dict[str, str]]:
    """Variables by what they weaken; some may have no effect here (see `missing`)."""
    cleared = ",".join(f"-{name}_Usable,-{name}" for name in _HWCAPS)
    return {
        "numpy": {"NPY_DISABLE_CPU_FEATURES": ",".join(numpy_features())},
        "openblas": {"OPENBLAS_CORETYPE": "Prescott"},
        "numba": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
        "glibc": {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={cleared}"},
        "arrow": {"ARROW_USER_SIMD_LEVEL": "NONE"},
    }


def weakest() -> dict[str, str]:
    """All of them at once that work here."""
    without = missing()
    return {key: value for name, each in processors().items() if name not in without for key, value in each.items()}


if __name__ == "__main__":
    cache = os.path.join(tempfile.gettempdir(), "weakest-numba-cache")
    for key, value in {**weakest(), "NUMBA_CACHE_DIR": cache}.items():
        print(f"{key}={value}")
