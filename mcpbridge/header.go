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

// checkHeaders reports the first of a configuration's headers that is wrong.
func checkHeaders(headers map[string]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		err := header.Check(name, headers[name])
		if canonical := http.CanonicalHeaderKey(name); err == nil && seen[canonical] {
			err = errors.New("is there twice: upper and lower case are the same")
		} else {
			seen[canonical] = true
		}
		if err != nil {
			return fmt.Errorf("headers.%s: %w", visible.Detail(name), err)
		}
	}
	return nil
}
