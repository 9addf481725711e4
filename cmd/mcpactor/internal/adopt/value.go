package adopt

// kind is what a value is.
type kind int

const (
	other  kind = iota // what is never changed, such as a number
	text               // a string
	list               // a list
	object             // an object
)

// value is a value in a file, with its place in bytes.
type value struct {
	kind       kind
	start, end int
	text       string // what a string means
	items      []*value
	fields     []*field
	lines      bool // each part is on lines of its own, without brackets: a block of YAML, or a table of TOML
}

// field is a field of an object, with the place of its name.
type field struct {
	name       string
	start, end int
	value      *value
}

// field returns the field of a name, or nil. Of several, programs that read JSON take the last one.
func (v *value) field(name string) (found *field) {
	for _, f := range v.fields {
		if f.name == name {
			found = f
		}
	}
	return found
}

// object returns the object in a field, or an empty one.
func (v *value) object(name string) *value {
	if f := v.field(name); f != nil && f.value.kind == object {
		return f.value
	}
	return &value{kind: object}
}

// textOf returns the string in a field, or "".
func (v *value) textOf(name string) string {
	if f := v.field(name); f != nil {
		return f.value.text
	}
	return ""
}
