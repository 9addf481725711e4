// Package admission decides which sessions may dial, and which are evicted for them. A [Gate] takes facts
// and returns decisions. It sends nothing, starts no timers, and knows neither actors nor keys.
package admission
