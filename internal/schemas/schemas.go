// Package schemas checks the JSON Schemas of servers before something is validated with them. The
// validator follows references as deep as they lead: a schema that refers to itself would
// overflow its stack, which ends the process.
package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	// maxChain bounds the schemas that apply to one value because of each other, and maxSteps
	// those that apply to it at all.
	maxChain, maxSteps = 100, 10_000
	// maxNesting bounds the depth of a value. The validator takes up to maxChain times maxNesting
	// frames of about 5 kB, and the stack of a goroutine may have 250 MB on 32 bits.
	maxNesting = 200
)

// Check returns an error if a schema cannot be used: if its subschemas apply to one value in a
// circle, as {"$ref": "#"} does, or are too many for one value, or if it has references that
// Check cannot follow. It follows "#", JSON pointers such as "#/$defs/a", and anchors such as
// "#a", in a schema that embeds no other one with an $id.
func Check(schema *jsonschema.Schema) error {
	text, err := json.Marshal(schema) // what the validator has read, under the names of JSON Schema
	if err != nil {
		return err
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	d := &document{root: root, anchors: map[string][]any{}, loads: map[uintptr]load{}}
	d.read(root, true)
	if d.embeds && d.refers {
		return errors.New("it embeds a schema with an $id, and has references")
	}
	for _, s := range d.schemas {
		if _, err := d.apply(s, 0); err != nil {
			return err
		}
	}
	return nil
}

// CheckValue returns an error if a value is nested too deeply for a validator.
func CheckValue(value any) error {
	if !fits(value, maxNesting) {
		return fmt.Errorf("is nested more than %d times", maxNesting)
	}
	return nil
}

func fits(value any, levels int) bool {
	if levels < 0 {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for _, in := range value {
			if !fits(in, levels-1) {
				return false
			}
		}
	case []any:
		for _, in := range value {
			if !fits(in, levels-1) {
				return false
			}
		}
	}
	return true
}

// document is a schema that is checked. What is not a schema, such as a default value, is
// treated as one: that finds too much rather than too little.
type document struct {
	root    any
	schemas []map[string]any
	anchors map[string][]any // the schemas of each anchor
	embeds  bool             // an inner schema has an $id
	refers  bool             // there is a reference
	loads   map[uintptr]load // by the address of the schema
}

// read notes all schemas of a document.
func (d *document) read(value any, top bool) {
	switch value := value.(type) {
	case map[string]any:
		d.schemas = append(d.schemas, value)
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := value[keyword].(string); ok {
				d.anchors[name] = append(d.anchors[name], value)
			}
		}
		if id, ok := value["$id"].(string); ok {
			if name, isAnchor := strings.CutPrefix(id, "#"); isAnchor { // draft 7
				d.anchors[name] = append(d.anchors[name], value)
			} else if !top {
				d.embeds = true
			}
		}
		for keyword, in := range value {
			if _, isText := in.(string); isText && (keyword == "$ref" || keyword == "$dynamicRef") {
				d.refers = true
			}
			d.read(in, false)
		}
	case []any:
		for _, in := range value {
			d.read(in, false)
		}
	}
}

// load says what a validator does for one value.
type load struct {
	steps int // the schemas that apply to it; -1 while they are counted
	chain int // the most of them that apply because of each other
}

// apply returns what applies to a value to which this schema applies.
func (d *document) apply(schema any, depth int) (load, error) {
	s, ok := schema.(map[string]any)
	if !ok {
		return load{}, nil
	}
	at := reflect.ValueOf(s).Pointer()
	switch known := d.loads[at]; {
	case known.steps < 0:
		return load{}, errors.New("it refers to itself without an end")
	case known.steps > 0:
		return known, nil
	case depth > maxChain:
		return load{}, errChain
	}
	d.loads[at] = load{steps: -1}
	beside, err := d.beside(s)
	if err != nil {
		return load{}, err
	}
	all := load{1, 1}
	for _, other := range beside {
		more, err := d.apply(other, depth+1)
		if err != nil {
			return load{}, err
		}
		all.steps, all.chain = all.steps+more.steps, max(all.chain, 1+more.chain)
		switch {
		case all.steps > maxSteps:
			return load{}, fmt.Errorf("it applies more than %d schemas to one value", maxSteps)
		case all.chain > maxChain:
			return load{}, errChain
		}
	}
	d.loads[at] = all
	return all, nil
}

var errChain = fmt.Errorf("its references lead further than %d schemas", maxChain)

// beside returns the schemas that a schema applies to the same value.
func (d *document) beside(s map[string]any) (all []any, err error) {
	for _, keyword := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[keyword].(string); ok {
			targets := d.targets(ref)
			if len(targets) == 0 {
				return nil, fmt.Errorf("it has a reference to something else than #, #/… or #anchor: %.100q", ref)
			}
			all = append(all, targets...)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[keyword].([]any)
		all = append(all, list...)
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		all = append(all, s[keyword])
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		branches, _ := s[keyword].(map[string]any)
		for _, branch := range branches {
			all = append(all, branch)
		}
	}
	return all, nil
}

// targets returns the schemas that a reference may mean.
func (d *document) targets(ref string) []any {
	fragment, local := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if !local || err != nil {
		return nil
	}
	if fragment == "" {
		return []any{d.root}
	}
	pointer, isPointer := strings.CutPrefix(fragment, "/")
	if !isPointer {
		return d.anchors[fragment]
	}
	at := d.root
	for segment := range strings.SplitSeq(pointer, "/") {
		switch in := at.(type) {
		case map[string]any:
			at = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)]
		case []any:
			var i int
			if _, err := fmt.Sscanf(segment, "%d", &i); err != nil || i < 0 || i >= len(in) {
				return nil
			}
			at = in[i]
		default:
			return nil
		}
	}
	if at == nil {
		return nil
	}
	return []any{at}
}
