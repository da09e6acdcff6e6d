# Trainmark with PyTorch, pinned as `make demo` pins them:
#   docker build --tag trainmark . && docker run --rm --volume "$PWD:/work" trainmark run quick
# On a GPU: `docker run --gpus all --ipc host …`. Mount a folder that user 1000 may write, or add `--user "$(id -u)"`.
FROM python:3.11-slim-bookworm

WORKDIR /opt/trainmark
COPY requirements/core.txt requirements/core.txt
COPY src/trainmark/machine/frameworks/locks/pytorch.txt pytorch.txt
RUN python -m pip install --no-cache-dir --requirement requirements/core.txt --requirement pytorch.txt

COPY LICENSE README.md pyproject.toml ./
COPY examples examples
COPY src src
RUN python -m pip install --no-cache-dir --no-deps . \
 && useradd --create-home --uid 1000 trainmark \
 && mkdir /work \
 && chown 1000 /work

USER 1000
WORKDIR /work
# Any user may be given by `docker run --user`.
ENV TRAINMARK_HOME=/tmp/trainmark
ENTRYPOINT ["trainmark"]
CMD ["--help"]
