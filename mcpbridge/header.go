package mcpbridge

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/header"
)

// checkHeaders returns an error for the first header of a configuration that is wrong.
func checkHeaders(headers map[string]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		err := header.Check(name, headers[name])
		canonical := http.CanonicalHeaderKey(name)
		if err == nil && seen[canonical] {
			err = errors.New("is there twice: upper and lower case are the same")
		}
		if err != nil {
			return fmt.Errorf("headers.%s: %w", visible.Detail(name), err)
		}
		seen[canonical] = true
	}
	return nil
}
