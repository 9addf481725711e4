// Command member is a member of a cluster under the command of a test, see package member.
package main

import (
	"fmt"
	"os"

	"github.com/mcpactor/mcpactor/tests/cluster/member"
)

func main() {
	if err := member.Main(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
