# The Python environment in /opt/hermit, as one layer; built without a network. It changes when a pinned package changes,
# not when Hermit does. Plain enough for the classic builder.
ARG ROOTFS
FROM ${ROOTFS} AS wheels
LABEL hermit.intermediate=1
COPY . /context
ARG PYTHON
ARG SOURCE_DATE_EPOCH
RUN sh /context/environment.sh "/usr/bin/python${PYTHON}" /context/wheels /context/tools /context/requirements.txt /stage

FROM scratch
LABEL hermit.intermediate=1
COPY --from=wheels /stage /
