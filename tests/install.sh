# What the install scripts of the suites share: they source this file.

# fail says what is missing, and ends the script.
fail() {
	echo "$0: $*" >&2
	exit 1
}

# quietly runs a command, and shows its output only if it fails.
quietly() {
	local output
	output=$("$@" 2>&1) && return
	echo "$output" >&2
	return 1
}

# as_root runs a command as root.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

# npm_ci WHAT [OPTION...] installs what package-lock.json of the current folder names, unless it is installed.
npm_ci() {
	local what=$1
	shift
	command -v npm >/dev/null || fail "there is no npm: install Node 20 or newer"
	local installed=node_modules/.package-lock.json # npm writes this file last
	[ ! -e "$installed" ] || [ "$installed" -ot package-lock.json ] || return 0
	echo "installing $what ..." >&2
	quietly timeout 900 npm ci --no-audit --no-fund --loglevel=error "$@" || fail "npm could not install $what"
}

# apt_update updates the lists of packages, once in a script.
apt_update() {
	[ -z "${updated:-}" ] || return 0
	command -v apt-get >/dev/null || fail "there is no apt-get"
	quietly as_root apt-get update || fail "apt-get could not get its lists; is this root, or is there sudo?"
	updated=yes
}

# apt_install COMMAND[:PACKAGE]... installs the Debian packages of the commands that are missing.
apt_install() {
	local missing=() tool
	for tool; do
		command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
	done
	[ ${#missing[@]} != 0 ] || return 0
	command -v apt-get >/dev/null || fail "there is no apt-get to install ${missing[*]}: put them on the PATH"
	echo "installing ${missing[*]} ..." >&2
	apt_update
	quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" ||
		fail "apt-get could not install ${missing[*]}"
}
