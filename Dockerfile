# The image of all of the driver's programs: [project.scripts] in pyproject.toml.
# Its context is the folder that scripts/image-context writes; building needs no network.
# BASE is any image with glibc and the Python (as python3) that the wheels were made for. It has no
# default: name one by its digest (docs/dev/image.md), as a tag can be moved to another image.
ARG BASE
FROM ${BASE} AS dependencies
ENV PATH=/opt/gcu-dra-driver/bin:$PATH

# The list of hashes is copied, as a builder's layer cache may not look at mounted files. pip runs
# from its own wheel and stays outside, so what is never used in a container is not in it.
COPY dependencies.txt /opt/gcu-dra-driver/
RUN --mount=type=bind,source=wheels,target=/wheels \
    python3 -m venv --without-pip /opt/gcu-dra-driver \
    && PYTHONPATH=$(echo /wheels/pip-*.whl) python3 -m pip --python /opt/gcu-dra-driver/bin/python install \
        --no-index --find-links /wheels --no-deps --require-hashes --no-compile --no-cache-dir \
        --requirement /opt/gcu-dra-driver/dependencies.txt \
    && rm -r /opt/gcu-dra-driver/lib/python3*/site-packages/kubernetes/aio \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/gcu-dra-driver/lib

FROM dependencies
COPY driver.txt /opt/gcu-dra-driver/
RUN --mount=type=bind,source=wheels,target=/wheels \
    PYTHONPATH=$(echo /wheels/pip-*.whl) python3 -m pip --python /opt/gcu-dra-driver/bin/python install \
        --no-index --find-links /wheels --no-deps --require-hashes --no-compile --no-cache-dir \
        --requirement /opt/gcu-dra-driver/driver.txt \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        /opt/gcu-dra-driver/lib/python3*/site-packages/controller \
        /opt/gcu-dra-driver/lib/python3*/site-packages/dra_driver \
        /opt/gcu-dra-driver/lib/python3*/site-packages/kubectl_gcu

ARG VERSION
LABEL org.opencontainers.image.title="gcu-dra-driver" \
    org.opencontainers.image.description="DRA driver for Enflame GCU accelerators on Kubernetes" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.licenses="Apache-2.0"
# Of one more arena for each thread nothing ever comes back (glibc's mallopt(3)).
ENV MALLOC_ARENA_MAX=2
# Tables of some MiB grow into new ones now and then: so the old ones go back to the system, and leave no holes.
ENV GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072
# The agent alone needs root, and its DaemonSet says so.
USER 65532:65532
CMD ["gcu-dra-agent", "--help"]
