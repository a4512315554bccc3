package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/slack-go/slack"
)

// errNotSlack means an answer that Slack would not give; a passing error, since a proxy or a server that is just being
// restarted gives such answers too.
var errNotSlack = errors.New("the answer is not one that Slack gives")

// permanentWords are the errors after which sending the same again is of no use, with what to do about them. Slack
// documents them for chat.postMessage, for chat.update, and for incoming webhooks under "Handling errors".
var permanentWords = map[string]string{
	// The token of a bot.
	"invalid_auth":              "the bot token is not valid: copy it again, or reinstall the app",
	"not_authed":                "the bot token is missing",
	"account_inactive":          "the bot was removed from the workspace: reinstall the app",
	"token_revoked":             "the bot token was revoked: reinstall the app and copy its token",
	"token_expired":             "the bot token has expired: copy it again",
	"not_allowed_token_type":    "this is not a bot token: it begins with xoxb-",
	"no_permission":             "the bot may not post here: invite it to the channel",
	"missing_scope":             "the app lacks a scope: add chat:write, and reinstall it",
	"access_denied":             "the workspace denies the app access",
	"ekm_access_denied":         "administrators have suspended posting",
	"enterprise_is_restricted":  "the organization does not allow this",
	"team_access_not_granted":   "the app has no access to this workspace",
	"team_not_found":            "the workspace is gone",
	"accesslimited":             "the workspace limits access from this network",
	"two_factor_setup_required": "the workspace wants two-factor authentication to be set up",
	"as_user_not_supported":     "this is not a bot token: it begins with xoxb-",

	// The channel.
	"channel_not_found":                        "there is no such channel, or the bot is not in it: invite it",
	"not_in_channel":                           "the bot is not in the channel: invite it",
	"is_archived":                              "the channel is archived",
	"channel_is_archived":                      "the channel is archived",
	"user_not_found":                           "there is no such user",
	"messages_tab_disabled":                    "the app takes no direct messages",
	"channel_type_not_supported":               "nothing can be posted to this type of channel",
	"restricted_action":                        "a workspace setting forbids posting here",
	"restricted_action_read_only_channel":      "the channel is read-only",
	"restricted_action_thread_only_channel":    "the channel takes replies only",
	"restricted_action_non_threadable_channel": "the channel takes no replies",
	"restricted_action_thread_locked":          "the thread is locked",
	"cannot_reply_to_message":                  "the message takes no replies",
	"thread_not_found":                         "the message is gone",

	// The webhook.
	"no_service":                        "the webhook was removed or switched off: make another one",
	"no_service_id":                     "the webhook's address is incomplete: copy it again",
	"no_active_hooks":                   "the webhook was switched off",
	"no_team":                           "the webhook's workspace is gone, or its address is incomplete: copy it again",
	"team_disabled":                     "the webhook's workspace is gone",
	"invalid_token":                     "the webhook's address is not valid: copy it again",
	"action_prohibited":                 "a workspace setting forbids the webhook to post",
	"action_forbidden":                  "a workspace setting forbids the webhook to post",
	"posting_to_general_channel_denied": "the webhook may not post to this channel",
}

// contentWords are the errors about the form of a message. They too are permanent, once it was sent as plain text.
var contentWords = map[string]string{
	"invalid_payload":                         "the server cannot read our message",
	"invalid_blocks":                          "the server cannot read our message",
	"invalid_blocks_format":                   "the server cannot read our message",
	"invalid_attachments":                     "the server cannot read our message",
	"msg_blocks_too_long":                     "the message is too long",
	"msg_too_long":                            "the message is too long",
	"too_many_attachments":                    "the message has too many parts",
	"no_text":                                 "the server wants another form of message",
	"missing_text_or_fallback_or_attachments": "the server wants another form of message",
}

// passingWords are the errors that Slack documents as its own trouble, or as too many messages.
var passingWords = map[string]bool{
	"ratelimited": true, "rate_limited": true, "message_limit_exceeded": true, "request_timeout": true,
	"internal_error": true, "fatal_error": true, "service_unavailable": true, "rollup_error": true,
	"team_added_to_org": true, "org_login_required": true, "external_channel_migrating": true,
}

// slackError sorts an error of a call into permanent and passing ones, worded for a user. A word that Slack documents
// nowhere is passing: to give up wrongly loses alerts.
func slackError(err error) error {
	if err == nil || isPermanent(err) {
		return err
	}
	r, isRefusal := errors.AsType[*refusal](err)
	word := slackWord(err)
	switch reason, known := reasonFor(word); {
	case known:
		return &PermanentError{"Slack answered " + word + ": " + reason}
	case isRefusal && !passingStatus(r.status):
		return &PermanentError{"Slack " + describe(err, word)}
	case isRefusal && r.retryAfter > 0:
		return &RetryError{After: r.retryAfter, Err: fmt.Errorf("Slack %s", describe(err, word))}
	case isGarbage(err):
		return errNotSlack
	}
	return fmt.Errorf("Slack %s", describe(err, word))
}

// describe returns what is known of err without anything that a server could smuggle in.
func describe(err error, word string) string {
	_, isAnswer := errors.AsType[slack.SlackErrorResponse](err)
	switch {
	case isAnswer && word == "":
		return "answered with an error that is not one of Slack's"
	case isAnswer:
		return "answered " + word
	case word != "":
		return err.Error() + ": " + word
	}
	return err.Error()
}

func reasonFor(word string) (string, bool) {
	if reason, ok := permanentWords[word]; ok {
		return reason, true
	}
	reason, ok := contentWords[word]
	return reason, ok
}

// slackWord returns Slack's word for an error, empty when there is none.
func slackWord(err error) string {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.word
	}
	if e, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return errorWord(e.Err)
	}
	return ""
}

func isAboutContent(err error) bool {
	_, ok := contentWords[slackWord(err)]
	return ok
}

// cannotBeUpdated reports whether an update was refused for a reason that another try will not change. Unlike a post, an
// update has something to fall back on, so every word counts that does not speak of passing trouble.
func cannotBeUpdated(err error) bool {
	word := slackWord(err)
	return word != "" && !passingWords[word]
}

// passingStatus reports whether an HTTP status says "not at present" rather than "not like this".
func passingStatus(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status == http.StatusTooEarly
}

// isGarbage reports whether an answer came that the client could not read.
func isGarbage(err error) bool {
	if errors.Is(err, errUnreachable) {
		return false
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	_, status := errors.AsType[slack.StatusCodeError](err)
	return syntax || shape || status || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
