package login

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClaimIsTakenOverWhenItWasSeenForLong(t *testing.T) {
	var w watch
	began := time.Now()
	for _, one := range []struct {
		at    time.Duration
		claim string
		step  claimStep
		wait  time.Duration
	}{
		{0, "", take, 0},
		{1, "other", await, leastWait},
		{time.Second + 1, "other", await, time.Second / 2},
		{10 * time.Second, "other", await, mostWait},
		{45 * time.Second, "other", await, mostWait},
		{45*time.Second + 1, "other", take, 0},
		{50 * time.Second, "other", take, 0}, // the first attempt was not saved
		{51 * time.Second, "third", await, leastWait},
		{95 * time.Second, "other", await, leastWait}, // an id does not come back: if it did, it would be another claim
		{95*time.Second + 1, "own", have, 0},
		{96 * time.Second, "", take, 0},
		{200 * time.Second, "fourth", await, leastWait},
	} {
		step, wait := w.see(one.claim, "own", began.Add(one.at))
		require.Equal(t, one.step, step, one.at)
		require.Equal(t, one.wait, wait, one.at)
	}
	require.Greater(t, claimPatience, ClaimTime+10*time.Second, "reading and writing the store takes some seconds")
}
