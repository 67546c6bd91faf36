# bubblewrap from Debian's source package, built without a network. BUILDER is a Debian of the images' own suite with a
# compiler, so that the program runs on the images' C library; nothing of it but the program comes along.
ARG BUILDER
FROM ${BUILDER} AS build
LABEL hermit.intermediate=1
COPY . /context
ARG SOURCE_DATE_EPOCH
RUN sh /context/bubblewrap.sh /context /stage

FROM scratch
LABEL hermit.intermediate=1
COPY --from=build /stage /
