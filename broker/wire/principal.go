package wire

// Principal is whom a connection acts for, as ACLs, quotas and logs name it. The zero value is Anonymous.
type Principal struct{ Type, Name string }

// Anonymous is whoever has not proved to be anyone: every client of a PLAINTEXT listener.
var Anonymous = Principal{Type: "User", Name: "ANONYMOUS"}

// String is Type:Name, such as User:alice.
func (p Principal) String() string {
	if p == (Principal{}) {
		p = Anonymous
	}
	return p.Type + ":" + p.Name
}
