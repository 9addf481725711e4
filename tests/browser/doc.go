// Package browser tests the page of package debug in Debian's Chromium, and its
// accessibility with axe-core. It is a module of its own, so that programs that use mcpactor
// do not depend on the driver of the browser.
//
// The script install installs both. The tests need Linux and Node:
//
//	tests/browser/install
//	cd tests/browser && go test ./...
package browser
