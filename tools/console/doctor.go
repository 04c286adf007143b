package console

import (
	"context"
	"time"

	"barnabas/admin/health"
)

func doctorPage() page {
	return page{path: "/doctor", title: "Doctor", file: "doctor.html", under: "/doctor", entry: true, pace: 10 * time.Second, live: []string{"findings"}, data: doctor}
}

// doctorData is what is wrong or going to be.
type doctorData struct {
	Healthy   bool
	Findings  []health.Finding
	Counts    health.Counts
	NotJudged []string
}

func doctor(ctx context.Context, c *Console, _ question) (any, error) {
	s, err := c.thoroughSnapshot(ctx, 10*time.Second)
	if err != nil {
		return nil, err
	}
	findings, counts := health.Doctor(s, c.Bootstrap)
	return &doctorData{health.Healthy(findings), findings, counts, s.Unread}, nil
}
