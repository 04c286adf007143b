package console

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// The chart of a lag is made here, as SVG: it can be read without script, and compared as text. Nothing in it comes from outside but numbers.

const (
	chartWidth, chartHeight = 1200, 170
	plotLeft, plotRight     = 70, 1190
	plotTop, plotBottom     = 10, 145
	gapSeconds              = 3 * int64(keepPace/time.Second) // longer than that nobody looked
)

// lagChart draws the last hour before now. Where nobody looked the line is broken.
func lagChart(list []sample, now time.Time) template.HTML {
	end := now.Unix()
	from := end - int64(time.Hour.Seconds())
	most := int64(0)
	for _, s := range list {
		most = max(most, s.lag)
	}
	top := niceTop(most)
	x := func(at int64) float64 {
		return plotLeft + float64(at-from)/float64(end-from)*(plotRight-plotLeft)
	}
	y := func(lag int64) float64 {
		return plotBottom - float64(lag)/float64(top)*(plotBottom-plotTop)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="lag over the last hour, at most %d records" data-testid="lag-chart">`, chartWidth, chartHeight, most)
	for i := range 3 {
		value := top * int64(i) / 2
		fmt.Fprintf(&out, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, plotLeft, plotRight, y(value), y(value), plotLeft-8, y(value)+4, number(value))
	}
	for minutes := int64(60); minutes >= 0; minutes -= 15 {
		label, anchor := fmt.Sprintf("%d min ago", minutes), "middle"
		if minutes == 0 {
			label, anchor = "now", "end"
		}
		fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, x(end-minutes*60), plotBottom+18, anchor, label)
	}
	for _, run := range runs(list, from) {
		var points strings.Builder
		for i, s := range run {
			if i > 0 {
				points.WriteByte(' ')
			}
			fmt.Fprintf(&points, "%.1f,%.1f", x(s.at), y(s.lag))
		}
		first, last := x(run[0].at), x(run[len(run)-1].at)
		fmt.Fprintf(&out, `<polygon class="area" points="%.1f,%d %s %.1f,%d"/><polyline class="line" points="%s"/>`, first, plotBottom, points.String(), last, plotBottom, points.String())
		fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.1f" r="2.2" fill="currentColor"/>`, last, y(run[len(run)-1].lag))
	}
	out.WriteString("</svg>")
	return template.HTML(out.String()) //nolint:gosec // numbers only
}

// runs are the pieces of a series between which nobody looked.
func runs(list []sample, from int64) [][]sample {
	var all [][]sample
	for _, s := range list {
		if s.at < from {
			continue
		}
		if n := len(all); n > 0 && s.at-all[n-1][len(all[n-1])-1].at <= gapSeconds {
			all[n-1] = append(all[n-1], s)
			continue
		}
		all = append(all, []sample{s})
	}
	return all
}

// niceTop is the end of the scale: 2, 4, 6, 8 or 10 times a power of ten, so that half of it is a whole number too.
func niceTop(most int64) int64 {
	if most <= 2 {
		return 2
	}
	unit := int64(math.Pow(10, math.Floor(math.Log10(float64(most)))))
	for _, step := range []int64{2, 4, 6, 8, 10} {
		if most <= step*unit {
			return step * unit
		}
	}
	return most
}
