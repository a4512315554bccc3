package web

import "github.com/rollcallhq/rollcall/probe"

// LoginPage asks who is there.
type LoginPage struct {
	Frame
	Name    string // as typed
	Next    string // address within this service to go on to
	Problem string // why the last attempt failed, empty on the first
	// Provider is the host of a provider of identities that people may log in by, at ProviderPath; empty for none.
	Provider, ProviderPath string
	Setup                  string // how to get an account while nobody has one, empty afterwards
}

func (LoginPage) template() string { return "login" }

// SetupPage lets the first user choose a name and a password.
type SetupPage struct {
	Frame
	Token    string // from the setup link
	Name     string // as typed
	Usable   bool   // the link is good; otherwise Title and Trouble say why not
	Title    string
	Trouble  string
	Problems Problems
}

func (SetupPage) template() string { return "setup" }

// ErrorPage says what went wrong, in words fit for a stranger.
type ErrorPage struct {
	Frame
	Status        int
	Title, Detail string
	Mistakes      []probe.Problem // what Detail consists of; empty where it stands for itself
}

func (ErrorPage) template() string { return "error" }
