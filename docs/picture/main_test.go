package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed reads all of an XML document.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	tokens := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := tokens.Token(); errors.Is(err, io.EOF) {
			return
		} else {
			require.NoError(t, err)
		}
	}
}

func TestCastBecomesAFilmOfItsFrames(t *testing.T) {
	picture, err := render([]byte(`{"version":2,"width":40,"height":3}
[0.0,"o","\u001b[2J\u001b[H\u001b[1mtitle\u001b[m  a < b\r\none\r\n"]
[1.0,"o","\u001b[2J\u001b[H\u001b[1mtitle\u001b[m  a < b\r\n\u001b[1;32m●\u001b[m two\r\n"]
[1.001,"o","three\r\n"]
[1.002,"o","four\r\n"]
`))
	require.NoError(t, err)
	wellFormed(t, string(picture))
	require.Equal(t, 2, strings.Count(string(picture), "<g transform"), "what comes at one moment is one frame")
	require.Equal(t, 1, strings.Count(string(picture), "title</tspan>"), "a line is drawn once, and has scrolled off the second frame")
	require.Contains(t, string(picture), ` class="c1 c32">●</tspan>`)
	require.Contains(t, string(picture), "a &lt; b")

	_, err = render([]byte("{}\n"))
	require.ErrorContains(t, err, "asciicast")
}

func TestPictureOfTheReadmeIsSmallAndStopsForThoseWhoWantNoMotion(t *testing.T) {
	picture, err := os.ReadFile("../demo.svg")
	require.NoError(t, err)
	require.Less(t, len(picture), 300_000)
	wellFormed(t, string(picture))
	require.Contains(t, string(picture), "prefers-reduced-motion")
	require.Contains(t, string(picture), "every call got exactly one reply")
	require.NotContains(t, string(picture), "VIOLATED")
}
