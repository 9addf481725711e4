package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pssOf returns the memory of a process, in bytes. Pages that several processes use
// count in parts. Only Linux says so.
func pssOf(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("bench: %s has no Pss", f.Name())
}

// servers returns the memory of the stdio servers: all the processes that we have
// started, but for the HTTP server.
func (p *place) servers() (sum float64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent ...; the name may be anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil || pid == p.http.cmd.Process.Pid {
			continue
		}
		size, err := pssOf(pid)
		if err == nil {
			sum += size
		}
	}
	return sum
}
