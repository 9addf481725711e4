package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Browser starts Chromium, and returns a context for chromedp. It ends with cancel.
func Browser(width, height int) (ctx context.Context, cancel context.CancelFunc, err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("there is no chromium: run tests/browser/install: %w", err)
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.UserDataDir(profile), chromedp.WindowSize(width, height),
		chromedp.Flag("headless", "new"), chromedp.NoSandbox, // Chromium as root has no sandbox
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocated)
	return ctx, func() {
		closeTab()
		end()
		_ = os.RemoveAll(profile)
	}, nil
}
