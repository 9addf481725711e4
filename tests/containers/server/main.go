// Command server is the server in the image of the tests.
package main

import "github.com/mcpactor/mcpactor/tests/internal/stdioserver"

func main() { stdioserver.Main() }
