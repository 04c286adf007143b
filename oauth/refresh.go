package oauth

import "time"

// refresh says when a token is renewed [sasl.login.refresh.*, KIP-255].
type refresh struct {
	factor, jitter    float64 // of the token's life
	minPeriod, buffer time.Duration
}

func (c Config) refresh() (r refresh, err error) {
	const prefix = "sasl.login.refresh."
	if r.factor, err = c.fraction(prefix+"window.factor", 0.8); err != nil {
		return r, err
	}
	if r.jitter, err = c.fraction(prefix+"window.jitter", 0.05); err != nil {
		return r, err
	}
	if r.minPeriod, err = c.span(prefix+"min.period.seconds", time.Second, time.Minute); err != nil {
		return r, err
	}
	r.buffer, err = c.span(prefix+"buffer.seconds", time.Second, 5*time.Minute)
	return r, err
}

// at is when to renew a token: after a part of its life, but some time before its end and not too soon. One that lives too briefly for that is renewed after a part of what is left.
// random is in [0, 1).
func (r refresh) at(b Bearer, now time.Time, random float64) time.Time {
	if now.After(b.Expires) {
		return now.Add(renewalPause)
	}
	part := r.factor + r.jitter*random
	if now.Add(r.minPeriod + r.buffer).After(b.Expires) {
		return now.Add(max(time.Second, time.Duration(part*float64(b.Expires.Sub(now)))))
	}
	begin := b.Issued
	if begin.IsZero() {
		begin = now
	}
	at := begin.Add(time.Duration(part * float64(b.Expires.Sub(begin))))
	if latest := b.Expires.Add(-r.buffer); at.After(latest) {
		return latest
	}
	if soonest := now.Add(r.minPeriod); at.Before(soonest) {
		return soonest
	}
	return at
}
