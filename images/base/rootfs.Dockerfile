# Another Debian image, completed: used in place of mmdebstrap's root filesystem where BASE_IMAGE= is given.
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS debian
LABEL hermit.intermediate=1
USER 0
COPY host /host
COPY packages.sh /host/packages.sh
ARG SUITE
ARG PACKAGES
ARG SOURCE_DATE_EPOCH
RUN sh /host/packages.sh "${SUITE}" "${PACKAGES}"

# One layer of its own: no history, no variable and no earlier layer of the other image comes along.
FROM scratch
LABEL hermit.intermediate=1
COPY --from=debian / /
