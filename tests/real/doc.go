// Package real runs sessions on MCP servers as they are published: on the
// reference servers, and on Playwright's with a Chromium. What the other tests
// show on servers of our own has to hold on these too, over each transport that
// they speak.
//
// The script install gets the servers; the tests have the build tag real, and
// need Linux:
//
//	tests/real/install
//	go test -tags real ./tests/real
package real
