// Command systems type-checks modules of this repository, with their tests, for other systems than this one. Run it
// from the root of the repository:
//
//	go run ./tests/systems -for darwin,windows . cluster
//
// Nothing has to be compiled for these systems: that takes a tenth of the time of go vet, which finds more.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/mcpactor/mcpactor/tests/internal/typecheck"
)

func main() {
	log.SetFlags(0)
	systems := flag.String("for", "darwin,windows", "the systems")
	flag.Parse()
	modules, all := flag.Args(), strings.Split(*systems, ",")
	errs := make([]error, len(all)*len(modules))
	var checks sync.WaitGroup
	for i := range errs {
		system, module := all[i/len(modules)], modules[i%len(modules)]
		checks.Go(func() { errs[i] = check(system, module) })
	}
	checks.Wait()
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

// check type-checks a module for a system.
func check(system, module string) error {
	packages, err := typecheck.Module(module, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"))
	if err == nil && packages == 0 {
		err = errors.New("there are no packages")
	}
	if err != nil {
		return fmt.Errorf("%s for %s: %w", module, system, err)
	}
	log.Printf("%s: %d packages, tests included, are right for %s", module, packages, system)
	return nil
}
