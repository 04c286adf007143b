package zkstate_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// Every behaviour is shown by the embedded server and by Apache's; each has a chroot of its own there. Ticks are short, so
// that a session can expire within a test.
func TestAgainstAServer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		for _, b := range behaviours {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				b.show(t, srv.Addr())
			})
		}
	})
}

var behaviours = []struct {
	name string
	show func(t *testing.T, addr string)
}{
	{"OperationsAreAnsweredEachByItselfInTheOrderGiven", operationsAreAnsweredEachByItselfInTheOrderGiven},
	{"TheChrootIsMadeWhenItIsMissing", theChrootIsMadeWhenItIsMissing},
	{"AMultiHappensWholeOrNotAtAll", aMultiHappensWholeOrNotAtAll},
	{"ThousandsOfOperationsArePipelinedAndThoseOnOneNodeKeepTheirOrder", thousandsOfOperationsArePipelinedAndThoseOnOneNodeKeepTheirOrder},
	{"AnOperationTooLargeForAServerIsNotSent", anOperationTooLargeForAServerIsNotSent},
	{"BadPathsAreRefusedWithoutAskingTheServer", badPathsAreRefusedWithoutAskingTheServer},
	{"AWatchFiresOnceForEveryChangeThatIsReadAgain", aWatchFiresOnceForEveryChangeThatIsReadAgain},
	{"ASessionOutlivesABrokenConnectionWithItsNodesAndWatches", aSessionOutlivesABrokenConnectionWithItsNodesAndWatches},
	{"OperationsOfAnExpiredSessionNeverRunInTheNext", operationsOfAnExpiredSessionNeverRunInTheNext},
	{"AWriteWhoseAnswerIsLostIsReportedAsUnknown", aWriteWhoseAnswerIsLostIsReportedAsUnknown},
	{"OperationsWaitForAServerThatIsAway", operationsWaitForAServerThatIsAway},
	{"AnotherServerIsTriedWhenTheFirstHangsOrSpeaksSomethingElse", anotherServerIsTriedWhenTheFirstHangsOrSpeaksSomethingElse},
	{"CloseEndsTheSessionAtOnceAndEverythingThatWaits", closeEndsTheSessionAtOnceAndEverythingThatWaits},
	{"CloseDoesNotWaitForAServerThatIsAway", closeDoesNotWaitForAServerThatIsAway},
	{"WithSecureACLsOnlyTheCreatorMayWriteAndSecretsAreHidden", withSecureACLsOnlyTheCreatorMayWriteAndSecretsAreHidden},
	{"CredentialsHoldAfterAReconnectionAndInTheNextSession", credentialsHoldAfterAReconnectionAndInTheNextSession},
	{"RegistrationAnswersTheBrokerEpoch", registrationAnswersTheBrokerEpoch},
	{"RegistrationWhoseAnswerWasLostSucceeds", registrationWhoseAnswerWasLostSucceeds},
	{"TheNodeOfAnotherLiveSessionIsNotTakenAndTheErrorNamesIt", theNodeOfAnotherLiveSessionIsNotTakenAndTheErrorNamesIt},
	{"TheNodeOfADeadSessionIsWaitedOut", theNodeOfADeadSessionIsWaitedOut},
	{"TheSessionOfADeadProcessIsEndedAtOnceByWhoHasItsKey", theSessionOfADeadProcessIsEndedAtOnceByWhoHasItsKey},
	{"ASessionIsNotEndedWithoutItsPassword", aSessionIsNotEndedWithoutItsPassword},
	{"ASessionIsEndedThroughAnyServerThatAnswers", aSessionIsEndedThroughAnyServerThatAnswers},
	{"APersistentNodeInTheWayIsAnErrorAtOnce", aPersistentNodeInTheWayIsAnErrorAtOnce},
	{"ASessionMayBeEncryptedAndTheServerIsAuthenticated", aSessionMayBeEncryptedAndTheServerIsAuthenticated},
	{"SessionsExpireAgainAndAgainUnderLoad", sessionsExpireAgainAndAgainUnderLoad},
	{"AStartOutlivesItsSession", aStartOutlivesItsSession},
	{"AClientKnowsThatItsSessionMayBeOverBeforeItIs", clientKnowsThatItsSessionMayBeOverBeforeItIs},
	{"ABatchThatIsRefusedIsTriedOneByOne", aBatchThatIsRefusedIsTriedOneByOne},
	{"H23ADeposedControllerCanChangeNothing", h23ADeposedControllerCanChangeNothing},
	{"ABlockOfProducerIDsWhoseAnswerWasLostIsNotWasted", aBlockOfProducerIDsWhoseAnswerWasLostIsNotWasted},
	{"H52BlocksOfProducerIDsAreDisjointWhateverIsLost", h52BlocksOfProducerIDsAreDisjointWhateverIsLost},
	{"ProducerIDsEndWithAnErrorInsteadOfWrappingAround", producerIDsEndWithAnErrorInsteadOfWrappingAround},
	{"ABrokerMakesTheDirectoriesOfAFreshTree", aBrokerMakesTheDirectoriesOfAFreshTree},
	{"BrokersThatStartTogetherAgreeOnTheCluster", brokersThatStartTogetherAgreeOnTheCluster},
	{"AConfigurationIsWrittenBeforeItsNotification", aConfigurationIsWrittenBeforeItsNotification},
}

func fourLetters(addr, word string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(word)); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := io.ReadAll(conn)
	return string(b), err
}

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

func chroot(t *testing.T) string {
	return "/" + strings.Map(func(r rune) rune {
		if r == '/' || r < '0' {
			return '_'
		}
		return r
	}, t.Name())
}

func connect(t *testing.T, addr string, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{Servers: addr + chroot(t), SessionTimeout: 20 * time.Second, ConnectTimeout: time.Minute, Log: quiet()}
	if change != nil {
		change(&cfg)
	}
	c, err := Connect(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Sessions that tests let end: longer than a busy machine holds a process up, as a rule.
const shortSession = 1500 * time.Millisecond

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// expect waits for an event of that kind and drops those before it.
func expect(t *testing.T, s *Subscription, kind EventKind) Event {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e, ok := <-s.C():
			require.True(t, ok, "events ended before %v", kind)
			if e.Kind == kind {
				return e
			}
		case <-timeout:
			require.Fail(t, "no event", "%v", kind)
		}
	}
}

// proxy stands between a client and the server.
type proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool
	refusing bool
	muted    bool   // answers are swallowed; requests arrive
	trap     []byte // the request with these bytes is the last whose answer passes not
	sprung   chan struct{}
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{target: target, listener: l, conns: map[net.Conn]bool{}}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	defer p.wg.Done()
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refusing := p.refusing
		p.mu.Unlock()
		if refusing {
			_ = in.Close()
			continue
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		p.wg.Add(2)
		go p.copy(out, in, false)
		go p.copy(in, out, true)
	}
}

func (p *proxy) copy(to, from net.Conn, answers bool) {
	defer p.wg.Done()
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if !answers && p.trap != nil && bytes.Contains(buf[:n], p.trap) {
			p.muted, p.trap = true, nil
			close(p.sprung)
		}
		muted := p.muted && answers
		p.mu.Unlock()
		if muted {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// loseAnswerTo lets f run until its request with those bytes is at the server and took effect, as happened tells; then it
// breaks the connection without having let the answer through.
func (p *proxy) loseAnswerTo(t *testing.T, request string, happened func() bool, f func()) {
	t.Helper()
	sprung := make(chan struct{})
	p.mu.Lock()
	p.trap, p.sprung = []byte(request), sprung
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-sprung
	waitFor(t, happened)
	p.heal()
	p.cut()
	<-done
}

// cut breaks every connection and, with refuse, lets none through until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = map[net.Conn]bool{}
}

func (p *proxy) refuse() {
	p.mu.Lock()
	p.refusing = true
	p.mu.Unlock()
	p.cut()
}

func (p *proxy) mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = true
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing, p.muted = false, false
}
