// Package eventname names events for people and programs that read them as text.
package eventname

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
)

// hump is where a new word begins in the name of a type.
var hump = regexp.MustCompile(`([a-z])([A-Z])`)

// Of returns the name of an event: that of its type in snake case, such as session_opened.
func Of(e messages.Event) string { return Snake(reflect.TypeOf(e).Elem().Name()) }

// Snake returns the name of a type in snake case.
func Snake(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "${1}_$2")) }
