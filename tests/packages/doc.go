// Package packages tests the files that "make dist" makes, with the build tag packages: as packages for npm, Debian and RPM, as an image,
// and as archives. The script install installs what the tests need. They need root.
package packages
