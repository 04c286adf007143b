// Package metrics holds what a broker shows at /metrics against what was done to it.
package metrics
