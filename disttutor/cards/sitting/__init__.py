"""A sitting: how cards are asked, checked and summed up, without a screen."""
