# The daemon on the files of Python that it needs: no shell, no package manager. hack/image builds it where no image can be
# pulled; elsewhere `docker build .` does. Both bases must have the same Python, and the second pip and venv.
ARG BASE=docker.io/library/python:3.14-slim
ARG BUILDER=${BASE}

FROM ${BUILDER} AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/syncer
COPY hack/container/build.lock hack/container/runtime.lock ./
RUN /opt/pip/bin/pip install --require-hashes --only-binary=:all: -r build.lock \
 && /opt/pip/bin/pip --python /opt/syncer install --require-hashes --only-binary=:all: --no-compile -r runtime.lock \
 && python3 -m compileall -q --invalidation-mode=unchecked-hash /opt/syncer/lib

FROM packages AS daemon
COPY LICENSE README.md pyproject.toml setup.cfg ./
COPY syncer ./syncer
RUN /opt/pip/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
 && /opt/pip/bin/pip --python /opt/syncer install --no-deps --no-compile --root /daemon /wheel/*.whl \
 && python3 -m compileall -q --invalidation-mode=unchecked-hash -s /daemon /daemon/opt/syncer/lib

FROM ${BASE} AS python
COPY --from=packages /opt/syncer /opt/syncer
COPY hack/container/collect.py /
RUN python3 -B /collect.py /opt/syncer /root-of-image

FROM scratch
COPY --from=python /root-of-image /
COPY --from=packages /opt/syncer /opt/syncer
COPY --from=daemon /daemon /
ENV PATH=/opt/syncer/bin SYNCER_PLUGINS_FOLDER=/plugins PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["syncer"]
CMD ["--config", "/etc/syncer/syncer.yaml"]
# Fails where a file of the base is missing.
RUN ["syncer", "plugins", "check"]
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=https://github.com/vsyncer/vsyncer
ARG LICENSES=Apache-2.0
LABEL org.opencontainers.image.title="vsyncer" \
      org.opencontainers.image.description="A resource syncer daemon for virtual Kubernetes clusters" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="${LICENSES}"
