package debug

import (
	"context"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// shownWaiting is how many of the calls that wait for an approval are shown: the oldest.
	shownWaiting = 50
	// waitingTimeout bounds how long the store with these calls is asked.
	waitingTimeout = 3 * time.Second
)

// waiting is a call that waits for an approval.
type waiting struct {
	Key   messages.Key `json:"key"`
	Tool  string       `json:"tool"`
	Since time.Time    `json:"since"`
}

// booked is a source that has records of calls.
type booked interface{ CallBook() *callbook.Book }

// approvals returns the oldest calls that wait for an approval, and how many wait. It asks the store, so it is for a page that is
// loaded, and not for each update.
func (h *Handler) approvals(ctx context.Context) (oldest []waiting, total int) {
	source, is := h.source.(booked)
	if !is || source.CallBook() == nil {
		return nil, 0
	}
	ctx, cancel := context.WithTimeout(ctx, waitingTimeout)
	defer cancel()
	_ = source.CallBook().Waiting(ctx, func(r callbook.Record) { // a store that fails is in the log, and its calls are not shown
		oldest = append(oldest, waiting{r.Key, r.Tool, r.Since})
	})
	slices.SortFunc(oldest, func(a, b waiting) int { return a.Since.Compare(b.Since) })
	return oldest[:min(len(oldest), shownWaiting)], len(oldest)
}

// waitingRow is such a call as the page shows it.
type waitingRow struct {
	Key, Tool string
	Since     moment
}

// waitingRows returns the rows of the page.
func waitingRows(oldest []waiting, now time.Time) (rows []waitingRow) {
	for _, w := range oldest {
		rows = append(rows, waitingRow{w.Key.String(), w.Tool, ago(w.Since, now)})
	}
	return rows
}
