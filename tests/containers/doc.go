// Package containers tests servers that run in containers of podman and docker, with the build tag containers. The script
// install installs both, and the tests start a daemon of their own for docker, with directories of their own. They need root.
package containers
