"""Connections to the agents: channels, messages, bundles, one epoll over all of them."""
