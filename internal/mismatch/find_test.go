package mismatch

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type Embedded struct {
	Depth int `json:"depth"`
}

type entry struct {
	Embedded
	Name   string           `json:"name"`
	Count  int8             `json:"count,string"`
	At     time.Time        `json:"at"`
	Data   []byte           `json:"data"`
	Pair   [2]int           `json:"pair"`
	By     map[string]int   `json:"by"`
	Keys   map[int]string   `json:"keys"`
	Number json.Number      `json:"number"`
	Own    own              `json:"own"`
	Next   *entry           `json:"next"`
	Many   []map[string]any `json:"many"`
	Plain  bool
	hidden int //nolint:unused // it is no member
	Left   int `json:"-"`
}

// own decodes itself from a number.
type own struct{ Inner string }

func (o *own) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, new(int)) }

func TestValueThatDoesNotFitIsFound(t *testing.T) {
	for data, want := range map[string]struct{ path, value, of string }{
		` [] `:                                 {"", `[]`, "mismatch.entry"},
		`{"name":5}`:                           {".name", `5`, "string"},
		`{"NAME":5}`:                           {".name", `5`, "string"},
		`{"plain":5}`:                          {".Plain", `5`, "bool"},
		`{"depth":"secret"}`:                   {".depth", `"secret"`, "int"},
		`{"count":"5","name":[1]}`:             {".name", `[1]`, "string"},
		`{"count":5}`:                          {".count", `5`, "int8"},
		`{"count":"500"}`:                      {".count", `"500"`, "int8"},
		`{"at":5}`:                             {".at", `5`, "time.Time"},
		`{"at":"secret"}`:                      {".at", `"secret"`, "time.Time"},
		`{"data":"*"}`:                         {".data", `"*"`, "[]uint8"},
		`{"pair":[1,null,"x"],"name":true}`:    {".name", `true`, "string"},
		`{"pair":[1,1.5]}`:                     {".pair[]", `1.5`, "int"},
		`{"by":{"secret":1,"x":{}}}`:           {".by.*", `{}`, "int"},
		`{"keys":{"secret":"x"}}`:              {".keys", `{"secret":"x"}`, "map[int]string"},
		`{"number":"secret"}`:                  {".number", `"secret"`, "json.Number"},
		`{"own":5,"next":{"own":{"Inner":5}}}`: {".next.own", `{"Inner":5}`, "mismatch.own"},
		`{"next":{"next":{"by":[]}}}`:          {".next.next.by", `[]`, "map[string]int"},
		`{"many":[{"secret":1},{}," "]}`:       {".many[]", `" "`, "map[string]interface {}"},
		`{"hidden":"x","-":"x","Left":"x"}`:    {"", `{"hidden":"x","-":"x","Left":"x"}`, "mismatch.entry"},
	} {
		path, value, of := Find([]byte(data), reflect.TypeFor[*entry]())
		require.Equal(t, want, struct{ path, value, of string }{path, string(value), of.String()}, data)
	}
}
