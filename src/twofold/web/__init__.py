"""What the lab and a served model share: how requests are limited and refused, and how errors become answers."""
