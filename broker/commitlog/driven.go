package commitlog

import "time"

// Driven is a Manager without goroutines: whoever owns it says when background work is done, so that one thread can
// run many brokers in an order of its own. An owner that drops it without Close does what a crash does.
type Driven struct {
	*Manager
	jobs []*job
}

// OpenDriven is Open for an owner that drives: nothing happens between calls. now is a clock that never jumps, which
// says when background work is due; ManagerConfig.Now may jump.
func OpenDriven(cfg ManagerConfig, now time.Time) (*Driven, error) {
	m, err := load(cfg)
	if err != nil {
		return nil, err
	}
	return &Driven{Manager: m, jobs: m.jobs(now)}, nil
}

// Work does what is due, in a fixed order: sealed segments are made durable, then the jobs of the housekeeper.
func (d *Driven) Work(now time.Time) {
	for _, dir := range d.dirs {
		dir.flusher.work(false)
	}
	for _, j := range d.jobs {
		if !now.Before(j.next) {
			j.run(d.cfg.Now())
			j.next = now.Add(j.every)
		}
	}
}
