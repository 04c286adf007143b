package commitlog

// Driven is a Manager without goroutines: whoever owns it says when background work is done, so that one thread can
// run many brokers in an order of its own.
type Driven struct {
	*Manager
	jobs []*job
}

// OpenDriven is Open for an owner that drives: nothing happens between calls.
func OpenDriven(cfg ManagerConfig) (*Driven, error) {
	m, err := load(cfg)
	if err != nil {
		return nil, err
	}
	return &Driven{Manager: m, jobs: m.jobs(m.cfg.Now())}, nil
}

// Work does what is due by the manager's clock, in a fixed order: sealed segments are made durable, then the jobs of
// the housekeeper.
func (d *Driven) Work() {
	for _, dir := range d.dirs {
		dir.flusher.work(false)
	}
	now := d.cfg.Now()
	for _, j := range d.jobs {
		if !now.Before(j.next) {
			j.run(now)
			j.next = now.Add(j.every)
		}
	}
}
