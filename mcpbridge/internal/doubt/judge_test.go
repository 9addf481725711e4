package doubt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Silence is no evidence, whatever the second session answers.
func TestTheSilenceOfASessionShowsNothing(t *testing.T) {
	gone := &Answer{Refusal: &mcpbridge.Error{Session: mcpbridge.Gone}}
	result, refused, again := &Answer{}, &Answer{Refusal: refusal(400, 0, true, unknownSession)}, []Check{Ping, List}
	for _, c := range []struct {
		name                 string
		round, second, first Answers
		want                 Verdict
	}{
		{"the first is silent, the second answers", Answers{}, Answers{result, result}, Answers{}, Unsettled},
		{"the first is silent, the second is refused", Answers{}, Answers{refused, refused}, Answers{}, Unsettled},
		{"both are silent", Answers{}, Answers{}, Answers{}, Unsettled},
		{"the first is silent, and refused later", Answers{}, Answers{result, result}, Answers{refused, refused}, Unsettled},
		{"the first is silent, and answers later", Answers{}, Answers{result, result}, Answers{nil, result}, Alive},
		{"the first is silent, and gone later", Answers{}, Answers{result, result}, Answers{gone, gone}, Dead},
		{"one check is refused to both, the other is silent", Answers{refused, nil}, Answers{refused, result}, Answers{refused, nil}, Alive},
		{"one check is refused to the first, the other is silent", Answers{refused, nil}, Answers{result, result}, Answers{refused, nil}, Dead},
		{"one check is refused to the first, the second says nothing", Answers{refused, nil}, Answers{}, Answers{refused, nil}, Unsettled},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, c.round.judgeControl(again, c.second, c.first))
		})
	}
}
