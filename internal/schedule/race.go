//go:build race

package schedule

// underRace says that the race detector is on. It sees little in schedules, which are single-threaded.
const underRace = true
