# The root filesystem with the Python environment in /opt/hermit; built without a network. It changes when a pinned
# package changes, not when Hermit does. Plain enough for the classic builder.
ARG ROOTFS
FROM ${ROOTFS} AS wheels
LABEL hermit.intermediate=1
COPY . /context
ARG PYTHON
RUN sh /context/environment.sh "/usr/bin/python${PYTHON}" /context/wheels /context/tools /context/requirements.txt

FROM ${ROOTFS}
RUN useradd --uid 1000 --user-group --create-home --shell /bin/bash hermit
COPY --from=wheels /opt/hermit /opt/hermit
