package web

import "time"

// SubscribeForm is what somebody from the public fills in to be told of incidents.
type SubscribeForm struct {
	Action   string // address that it is posted to
	Types    []Tick // of channels
	Address  string
	Secret   string // of a webhook, to sign with
	About    SubscribeAbout
	Problems Problems
}

// Signs reports whether a webhook can be chosen, whose messages may be signed.
func (f SubscribeForm) Signs() bool {
	for _, t := range f.Types {
		if t.Value == "webhook" {
			return true
		}
	}
	return false
}

// SubscribeAbout is what a subscription is about: everything, or what is ticked.
type SubscribeAbout struct {
	All       bool
	Endpoints []PickOption
	Tags      []Tick
}

// Some reports whether there is anything to choose from.
func (a SubscribeAbout) Some() bool { return len(a.Endpoints)+len(a.Tags) > 0 }

// SubscribePage is the form alone.
type SubscribePage struct {
	Frame
	Form SubscribeForm
}

func (SubscribePage) template() string { return "subscribe" }

// SubscribeSaidPage says one thing.
type SubscribeSaidPage struct {
	Frame
	Title, Text string
	Manage      string // address at which the subscription is managed; may be empty
	Private     bool   // the address of the page holds a token
}

func (SubscribeSaidPage) template() string { return "subscribe_said" }

// SubscribeActPage has one button, for those who have followed a link in a message.
type SubscribeActPage struct {
	Frame
	Title, Text   string
	Where         string // an address as far as it may be shown; may be empty
	Action, Token string
	Button        string
}

func (SubscribeActPage) template() string { return "subscribe_act" }

// SubscribeManagePage shows a subscription to whoever has its link.
type SubscribeManagePage struct {
	Frame
	Action   string // address that its forms are posted to
	Token    string
	Type     string // "Email"
	Where    string // an address as far as it may be shown
	Waiting  bool   // nobody has confirmed it
	Broken   *time.Time
	Shut     bool // the status page takes a password that was not given: what the subscription is about is not shown
	About    SubscribeAbout
	Problems Problems
}

func (SubscribeManagePage) template() string { return "subscribe_manage" }
