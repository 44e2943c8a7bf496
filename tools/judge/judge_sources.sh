#!/usr/bin/env bash
# Fetches the judge's sources from Debian and PyPI into DIR: debian/ wordnet/ fortunes/ rated/ reuters/.
# Needs bash, apt and pip; no root. Usage: judge_sources.sh DIR
# The descriptions are those of the release alone, which change only with its point releases: updates, security and
# what else this machine's apt knows would make other rows every week, on every machine.
set -euo pipefail
dir=$(mkdir -p "$1" && cd "$1" && pwd)
suite=bookworm
lists=$dir/lists
apt_options=(-o "Dir::State::Lists=$lists" -o "Acquire::Languages=en,de,fr,es,it,pl,pt_BR,ru,da")
mkdir -p "$lists/partial" "$dir/debian" "$dir/packages" "$dir/unpacked"
apt-get "${apt_options[@]}" update
show_list() { /usr/lib/apt/apt-helper cat-file "$(find "$lists" -maxdepth 1 -name "*_debian_dists_${suite}_$1*" | head -n 1)"; }
show_list InRelease | grep -E '^(Version|Date):' | tee "$dir/debian/release.txt"
show_list main_binary-amd64_Packages > "$dir/debian/avail.txt"
for language in en de fr es it pl pt_BR ru da; do
  show_list "main_i18n_Translation-${language/_/%5f}" > "$dir/debian/Translation-$language"
done
(cd "$dir/packages" && apt-get "${apt_options[@]}" download wordnet-base fortunes fortunes-min r-cran-tm)
for package in "$dir"/packages/*.deb; do dpkg -x "$package" "$dir/unpacked"; done
# Rated snippets, for tests only. The sdist is unpacked, its build step is not run.
python3 -m pip download --no-deps --no-binary :all: -d "$dir/packages" vaderSentiment==0.5 || true
python3 - "$dir" <<'PY'
import glob, sys, tarfile, zipfile
directory = sys.argv[1]
for name in glob.glob(directory + '/packages/vaderSentiment-0.5.*'):
    (zipfile.ZipFile(name) if name.endswith('zip') else tarfile.open(name)).extractall(directory + '/unpacked')
for name in glob.glob(directory + '/unpacked/vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz'):
    tarfile.open(name).extractall(directory + '/unpacked')
PY
ln -sfn "$dir/unpacked/usr/share/wordnet" "$dir/wordnet"
ln -sfn "$dir/unpacked/usr/share/games/fortunes" "$dir/fortunes"
ln -sfn "$dir/unpacked/usr/lib/R/site-library/tm/texts" "$dir/reuters"
[ -d "$dir/unpacked/hutto_ICWSM_2014" ] && ln -sfn "$dir/unpacked/hutto_ICWSM_2014" "$dir/rated"
ls "$dir"
