"""The drivers and GPUs that JAX's support of CUDA needs.

It imports nothing that must be installed: `make setup-gpu` reads it. JAX's installation guide names both
minimums for each CUDA release. For CUDA 12 they hold with the cuDNN of `requirements-gpu12.lock`; newer ones
compute on GPUs from 7.5 only.
"""

from typing import NamedTuple


class CudaNeeds(NamedTuple):
    """What JAX needs for one release of CUDA.

    Attributes:
        release: of CUDA.
        plugin: the package of JAX with its support.
        driver: the lowest major version of NVIDIA's driver.
        capability: the lowest compute capability of a GPU.
        lock: the file with the packages to install.
    """

    release: int
    plugin: str
    driver: int
    capability: tuple[int, int]
    lock: str

    def has_driver(self, version: str) -> bool:
        """Return whether a driver, such as `535.183.01`, is new enough; True if its version is no number."""
        major = version.split(".")[0]
        return not major.isdecimal() or int(major) >= self.driver


NEWEST_FIRST = (
    CudaNeeds(13, "jax-cuda13-plugin", 580, (7, 5), "requirements-gpu.lock"),
    CudaNeeds(12, "jax-cuda12-plugin", 525, (5, 2), "requirements-gpu12.lock"),
)


def needs_of(release: int) -> CudaNeeds:
    """Return the needs of a CUDA release that JAX supports."""
    return next(needs for needs in NEWEST_FIRST if needs.release == release)


def capability_text(capability: tuple[int, int]) -> str:
    """Return a compute capability as NVIDIA writes it, such as `7.5`."""
    return f"{capability[0]}.{capability[1]}"
