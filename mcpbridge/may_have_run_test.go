package mcpbridge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsKnownOfACallThatFailed(t *testing.T) {
	for name, c := range map[string]struct {
		e          Error
		mayHaveRun bool
	}{
		"no connection":                    {Error{Class: NotSent}, false},
		"not processed":                    {Error{Class: NotSent, Sent: true}, false},
		"the session is not known":         {Error{Class: Expired, Sent: true, Status: 404}, false},
		"the endpoint is not there":        {Error{Class: Unavailable, Sent: true, Status: 404}, false},
		"the connection ended":             {Error{Class: Lost, Sent: true}, true},
		"400":                              {Error{Class: Invalid, Sent: true, Status: 400}, true},
		"400, invalid request":             {Error{Class: Invalid, Sent: true, Status: 400, Code: -32600}, false},
		"400, invalid request, its own id": {Error{Class: Invalid, Sent: true, Status: 400, Code: -32600, Own: true}, false},
		"405":                              {Error{Class: Invalid, Sent: true, Status: 405}, false},
		"405 with its own id":              {Error{Class: Invalid, Sent: true, Status: 405, Code: -32000, Own: true}, true},
		"401":                              {Error{Class: Unauthorized, Sent: true, Status: 401}, false},
		"401 with its own id":              {Error{Class: Unauthorized, Sent: true, Status: 401, Code: -32603, Own: true}, true},
		"no credentials":                   {Error{Class: Unauthorized}, false},
		"429":                              {Error{Class: RateLimited, Sent: true, Status: 429}, false},
		"429 with its own id":              {Error{Class: RateLimited, Sent: true, Status: 429, Code: -32603, Own: true}, true},
		"500":                              {Error{Class: ServerError, Sent: true, Status: 500, Code: -32602, Own: true}, true},
		"invalid parameters, or output":    {Error{Class: Invalid, Sent: true, Status: 200, Code: -32602, Own: true}, true},
		"400, invalid parameters":          {Error{Class: Invalid, Sent: true, Status: 400, Code: -32602}, true},
		"no such method":                   {Error{Class: Invalid, Sent: true, Status: 200, Code: -32601, Own: true}, false},
		"invalid request":                  {Error{Class: ServerError, Sent: true, Status: 200, Code: -32600, Own: true}, true},
		"a code that is reserved":          {Error{Class: Invalid, Sent: true, Status: 400, Code: -32650, Own: true}, true},
		"internal error":                   {Error{Class: ServerError, Sent: true, Status: 200, Code: -32603, Own: true}, true},
		"parameters that cannot be sent":   {Error{Class: Invalid}, false},
		"no response":                      {Error{Class: Protocol, Sent: true, Status: 202}, true},
		"a redirect that is not followed":  {Error{Class: Protocol, Status: 307}, false},
		"a redirect to the result":         {Error{Class: Protocol, Sent: true, Status: 303}, true},
		"the deadline":                     {Error{Class: Deadline, Sent: true}, true},
		"the deadline before it was sent":  {Error{Class: Deadline}, false},
		"cancelled":                        {Error{Class: Cancelled, Sent: true}, true},
		"a hook panicked":                  {Error{Class: Internal}, false},
		"no input":                         {Error{Class: Refused, Sent: true}, false},
		"no input, later":                  {Error{Class: Refused, Sent: true, Begun: true}, true},
		"401, later":                       {Error{Class: Unauthorized, Sent: true, Status: 401, Begun: true}, true},
	} {
		require.Equal(t, c.mayHaveRun, c.e.MayHaveRun(), name)
	}
}
