package simulation

import (
	"fmt"
	"slices"
	"time"

	"barnabas/broker/group"
)

// durable tells whether a topic is one of those that groups and transactions live by.
func durable(topic string) bool {
	switch topic {
	case offsetsTopic, transactionTopic, inputTopic, outputTopic:
		return true
	}
	return false
}

// written are the topics that producers write to.
func (s *Sim) written() []string {
	return slices.DeleteFunc(s.topicNames(), func(name string) bool { return durable(name) && name != inputTopic })
}

// formClubs makes the groups that this run has, and their topics.
func (s *Sim) formClubs() {
	plain, transforms := s.w.chance(0.6), s.w.chance(0.6)
	if s.only.clubs != nil {
		plain, transforms = s.only.clubs.plain, s.only.clubs.transforms
	}
	if !plain && !transforms {
		return
	}
	for _, topic := range []string{offsetsTopic, transactionTopic, inputTopic, outputTopic} {
		s.writeTopic(topic, durablePartitions)
	}
	if plain {
		c := s.newClub("readers")
		for i := range 3 {
			m := &member{s: s, club: c}
			if i == 0 {
				name := "static"
				m.instance = &name
			}
			c.members = append(c.members, m)
		}
	}
	if transforms {
		c := s.newClub("transformers")
		for i := range 2 {
			m := &member{s: s, club: c}
			m.t = &transformer{m: m, id: fmt.Sprintf("id%d", i)}
			c.members = append(c.members, m)
		}
	}
	for _, c := range s.clubs {
		for _, m := range c.members {
			m.begin()
		}
	}
}

func (s *Sim) newClub(name string) *club {
	c := &club{s: s, name: name, topic: inputTopic, book: newOffsetBook(s, name)}
	s.clubs = append(s.clubs, c)
	return c
}

// newID is the part of a member id that makes it unique.
func (s *Sim) newID() string {
	s.ids++
	return fmt.Sprint(s.ids)
}

// producerID is one of the ids that ZooKeeper gives out.
func (s *Sim) producerID() int64 {
	if s.pids > 0 && s.planted("producer ids are given twice") {
		return s.pids
	}
	s.pids++
	return s.pids
}

// planTrouble has things happen to the members of groups until the storm is over.
func (s *Sim) planTrouble() {
	troubles := []func(*Sim){leaveGroup, killMember, sleepMember, takeOver}
	if len(s.clubs) == 0 {
		return
	}
	s.w.in(s.w.between(500*time.Millisecond, 4*time.Second), func() {
		if !s.calm {
			trouble := pick(s.w, troubles)
			s.act(func() { trouble(s) })
			s.planTrouble()
		}
	})
}

// What happens to clients.

func (s *Sim) someMember() *member {
	var all []*member
	for _, c := range s.clubs {
		all = append(all, c.members...)
	}
	if len(all) == 0 {
		return nil
	}
	return pick(s.w, all)
}

// leaveGroup has a member leave, and come again later.
func leaveGroup(s *Sim) {
	if m := s.someMember(); m != nil {
		s.w.tell("%s leaves %s", m, m.club.name)
		m.end(true)
	}
}

// killMember ends a client process without a word. A transactional one may leave its transaction open.
func killMember(s *Sim) {
	if m := s.someMember(); m != nil {
		s.w.tell("%s of %s dies", m, m.club.name)
		m.end(false)
		if m.t != nil {
			m.t.forget()
		}
	}
}

// sleepMember has a client process sleep, mostly past its session.
func sleepMember(s *Sim) {
	if m := s.someMember(); m != nil && !m.gone {
		m.sleep(s.w.between(500*time.Millisecond, 4*time.Second))
	}
}

// takeOver starts a client process in the place of one that sleeps, but lives: the old one wakes up some time later, and
// goes on with the transaction that it has.
func takeOver(s *Sim) {
	m := s.someMember()
	if m == nil || m.gone || m.t == nil {
		return
	}
	m.retired = true
	m.sleep(s.w.between(200*time.Millisecond, 3*time.Second))
	s.w.in(4*time.Second, func() { m.end(true) })
	i := slices.Index(m.club.members, m)
	next := &member{s: s, club: m.club, instance: m.instance}
	next.t = &transformer{m: next, id: m.t.id}
	m.club.members[i] = next
	next.begin()
}

// clientsConverged tells what is not as it should be with groups and transactions.
func (s *Sim) clientsConverged() error {
	for _, c := range s.clubs {
		if err := c.settled(); err != nil {
			return err
		}
	}
	if len(s.clubs) > 0 && s.clubs[len(s.clubs)-1].members[0].t != nil {
		s.deeds.read()
		return s.deeds.settled()
	}
	return nil
}

// settled tells whether a group is as it should be: all members are in one generation, and share all partitions.
func (c *club) settled() error {
	owned := map[group.TopicPartition]string{}
	for _, m := range c.members {
		if m.gone || m.coordinator == nil {
			return fmt.Errorf("%s is not in group %s", m, c.name)
		}
		if m.generation != c.members[0].generation {
			return fmt.Errorf("group %s has members in generations %d and %d", c.name, m.generation, c.members[0].generation)
		}
		for _, tp := range m.mine {
			owned[tp] = m.id
		}
	}
	if len(owned) != durablePartitions {
		return fmt.Errorf("group %s works on %v alone", c.name, owned)
	}
	return nil
}
