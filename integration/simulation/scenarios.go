package simulation

import "time"

// scenario narrows a run to the faults and works of one hazard; nil: all there are.
type scenario struct {
	kinds   []func(*Sim, *node)
	works   []func(*Sim)
	prepare func(*Sim)
	clubs   *clubs
	// succeeds: a node that was killed ends the session of its life before, every other time. Elsewhere it waits, as a
	// broker does that was started in another place: that is the longer and the more troubled way.
	succeeds bool
}

// clubs says which groups there are; nil: it is drawn.
type clubs struct{ plain, transforms bool }

// scenarios are those of the tests of the same names. The empty name is a run with everything.
var scenarios = map[string]scenario{
	"": {},
	"H22": {kinds: []func(*Sim, *node){crash, isolate}, works: []func(*Sim){createTopic, createTopic, reassignByAPI}, clubs: &clubs{}, succeeds: true,
		prepare: func(s *Sim) { s.plants.modern(s); s.unclean = true }},
	"H24": {kinds: []func(*Sim, *node){crash, endSession, breakConnection, deposeController}, works: []func(*Sim){createTopic}, clubs: &clubs{}},
	"H27": {kinds: []func(*Sim, *node){crash, deposeController}, works: []func(*Sim){createTopic, awayAndLost, reassignByAPI}, clubs: &clubs{},
		prepare: func(s *Sim) { s.unclean, s.faults.every = true, 3*time.Second }},
	"H28": {kinds: []func(*Sim, *node){crash, endSession, breakConnection}, works: []func(*Sim){createTopic}, succeeds: true},
	"H30": {kinds: []func(*Sim, *node){cutFromZooKeeper}, works: []func(*Sim){createTopic, reassignByAPI, electByAPI}},
	"H32": {kinds: []func(*Sim, *node){breakConnection}, works: []func(*Sim){createTopic, deleteTopic, addPartitions, reassignByNode, electByNode, writeJunk}},
	"H35": {kinds: []func(*Sim, *node){deposeController}, works: []func(*Sim){createTopic, shutDown, shutDown}},
	"H37": {kinds: []func(*Sim, *node){crash, breakDisk}, works: []func(*Sim){createTopic, createTopic, deleteTopic, reassignByAPI},
		prepare: func(s *Sim) { s.plants.modern(s) }},
	"H38": {kinds: []func(*Sim, *node){crash, powerCut, deposeController, cutLink},
		works: []func(*Sim){createTopic, reassignByAPI, reassignByAPI, thereAndBack, cancelReassignment, reassignByNode}, succeeds: true},
	"H46": {kinds: []func(*Sim, *node){fillDisk, fillDisk, crash, pause, cutLink, deposeController}, works: []func(*Sim){createTopic, deleteTopic, flipLeader, reassignByAPI}},
	"H50": {kinds: []func(*Sim, *node){crash, pause, cutLink}, works: []func(*Sim){createTopic, flipLeader, reassignByAPI}, clubs: &clubs{}, succeeds: true},
	"H51": {kinds: []func(*Sim, *node){crash, pause, cutLink}, works: []func(*Sim){flipLeader, electByAPI}, clubs: &clubs{transforms: true}},
	"H52": {kinds: []func(*Sim, *node){crash, deposeController, breakConnection}, works: []func(*Sim){allocateIDs, allocateIDs, createTopic}, clubs: &clubs{transforms: true}},
	"H53": {kinds: []func(*Sim, *node){crash, pause}, works: []func(*Sim){flipLeader}, clubs: &clubs{plain: true}},
	"H54": {kinds: []func(*Sim, *node){pause, cutFromZooKeeper, cutLink}, works: []func(*Sim){flipLeader}, clubs: &clubs{plain: true}},
	"H56": {kinds: []func(*Sim, *node){crash, pause}, works: []func(*Sim){flipLeader}, clubs: &clubs{plain: true, transforms: true}},
}
