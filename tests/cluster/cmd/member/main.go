// Command member is a member of a cluster under the command of a test, see package member.
package main

import (
	"os"

	"github.com/mcpactor/mcpactor/tests/cluster/member"
)

func main() {
	if member.Main() != nil {
		os.Exit(1)
	}
}
